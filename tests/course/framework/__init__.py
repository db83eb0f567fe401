"""What stands in the place of `Own`, a file for each exercise with a network.

`NAME.py` has a class `Framework` with what the network of that exercise asks for, of `op`, `call`
and `launch`: ops of the framework, and in numpy what the kernels shall do.
"""
