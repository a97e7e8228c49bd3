"""The two ways in which a run fails, which the command line turns into exit codes 2 and 1; and a check of seeds."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that says what, and what to do."""


class TrainingError(RuntimeError):
    """Training could not go on (a non-finite value, a full disk); the message says where it stopped."""


def check_seed(seed: int) -> None:
    """Refuse a negative seed, before anything is loaded or drawn."""
    if seed < 0:
        raise InputError(f"The seed must not be negative, but it is {seed}.")
