"""`python -m tinygraph_course ...` is `tinygraph course ...`, without an entry point.

Processes with learners' code load the program's file again: then nothing of it is run.
"""

if __name__ == "__main__":
    import sys

    from tinygraph.cli import main
    from tinygraph.cli.arguments import PARSERS
    from tinygraph_course.commands.table import COURSE

    PARSERS["course"] = COURSE
    sys.exit(main(["course", *sys.argv[1:]]))
