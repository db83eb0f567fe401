"""The program `tinygraph`: it can be interrupted from its first line on.

    while it loads, and while it ends        Ctrl-C says so in one line: exit code 130
    in between                               KeyboardInterrupt, as in any program (cli/__init__.py)

It stands beside the package and imports nothing: to load tinygraph and numpy takes a while, and an
interrupt would be a traceback out of the middle of them.  `python -m tinygraph` loads the package
before its program: then tinygraph/__init__.py calls `quiet_where_it_is_run`, first of all.
"""


def main() -> int:
    """Run the command; returns its exit code."""
    try:
        ours = quiet()
        from tinygraph.cli import main as command

        if ours:
            loud()
        try:
            return command()
        finally:
            if ours:
                quiet()
    except KeyboardInterrupt:
        end()
        return 130


def quiet() -> bool:
    """Let Ctrl-C end this process in one line, and say whether it does.

    Nothing changes where it is ignored, as in the background of a script, or handled otherwise.
    """
    from signal import SIGINT, default_int_handler, getsignal, signal

    if getsignal(SIGINT) not in (default_int_handler, end):
        return False
    try:
        signal(SIGINT, end)
    except ValueError:  # this is another thread than the main one, and no signal comes to it
        return False
    return True


def loud() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    from signal import SIGINT, default_int_handler, signal

    signal(SIGINT, default_int_handler)


def quiet_where_it_is_run(words: list[str]) -> None:
    """Be quiet where Python was started by these words to run the package, no module in it."""
    try:
        after = words[words.index("-m") + 1 :] if "-m" in words else []
        if after[:1] == ["tinygraph"] or "-mtinygraph" in words:
            quiet()
    except KeyboardInterrupt:
        end()


def end(*_: object) -> None:
    """Exit at once: an exception could be lost or reworded by what is being loaded."""
    import os

    try:  # noqa: SIM105  # contextlib need not be there yet
        os.write(2, b"interrupted\n")
    except OSError:  # nobody listens
        pass
    os._exit(130)
