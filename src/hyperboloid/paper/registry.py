"""The paper's figures by name. Nothing is imported here, so that the command line can name them at once.

To add one, write a module with a :class:`hyperboloid.paper.figures.FigureExperiment` and add a line: ``paper run NAME``
and ``paper report`` then know it.
"""

#: ``module:class`` of each
FIGURES: dict[str, str] = {
    "aggregation": "hyperboloid.paper.aggregation:Aggregation",
    "delta": "hyperboloid.paper.delta:Delta",
    "distortion": "hyperboloid.paper.distortion:DistortionOfModels",
    "attention": "hyperboloid.paper.attention:AttentionOnDisease",
    "efficiency": "hyperboloid.paper.efficiency:Efficiency",
    "att_dim": "hyperboloid.paper.att_dim:AttentionWidth",
}
