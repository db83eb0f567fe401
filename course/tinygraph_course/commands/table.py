"""The commands of `tinygraph course`: the function of each, what is said about it, its options."""

from __future__ import annotations

from tinygraph.cli.arguments import Command
from tinygraph_course.commands import learn, teach, watch

COURSE = Command(
    watch.watch,
    "exercises of numpy and CUDA C: check the current one whenever its file is saved",
    "check 8",
    {},
    {
        "start": Command(learn.start, "make the files of the exercises", "my-course", learn.FOLDER),
        "check": Command(learn.check_one, "check an exercise once", "8", learn.EXERCISE),
        "hint": Command(learn.hint, "the next hint for the current step", "", learn.EXERCISE),
        "run": Command(
            learn.run, "train a network on digits with what you wrote", "8", learn.EXERCISE
        ),
        "status": Command(learn.status, "how far every exercise is", "", {}),
        "reset": Command(
            learn.reset, "begin an exercise anew; the file is kept", "8", learn.EXERCISE
        ),
        "solution": Command(
            learn.solution,
            "print the solution of an exercise that is done",
            "8",
            {**learn.EXERCISE, "--anyway": "also where it is not done"},
        ),
        "verify": Command(
            learn.verify, "for writers: is each mistake of an exercise named?", "8", learn.OWN
        ),
        "grade": Command(
            teach.grade_all,
            "for teachers: grade a submission, or a class",
            "submissions --csv grades.csv",
            teach.GRADE,
        ),
        "gradescope": Command(
            teach.gradescope,
            "for teachers: write an autograder for Gradescope",
            "autograder.zip --exercise 8 --private pack.toml",
            teach.GRADESCOPE,
        ),
        "build": Command(
            teach.build,
            "for teachers: build a wheel without the solutions",
            "--stripped dist",
            teach.BUILD,
        ),
        "private": Command(
            teach.private,
            "for teachers: make a pack of private cases",
            "20261123 pack.toml",
            teach.PRIVATE,
        ),
        "protocol": Command(
            learn.protocol,
            "seal what a project states, or compute its figures again",
            "16_srcnn.toml",
            learn.PROTOCOL,
        ),
    },
)
