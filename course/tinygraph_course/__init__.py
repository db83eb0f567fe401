"""The course: exercises of numpy and CUDA C, whose answers are the framework's own ops.

content     an exercise as its folder of files says it (../exercises/NAME)
checking    the learner's file in a process of its own, and what is wrong with it
grading     submissions, classes, Gradescope, private cases
commands    `tinygraph course ...`, which the framework's command finds by an entry point

It uses tinygraph as programs do; tinygraph never imports it.
"""
