"""The two ways in which a run fails; the command line turns them into exit codes 2 and 1."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that says what, and what to do."""


class TrainingError(RuntimeError):
    """Training could not go on (a non-finite value, a full disk); the message says where it stopped."""
