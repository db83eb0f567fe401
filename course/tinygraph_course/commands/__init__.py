"""`tinygraph course`: the commands of learners, writers of exercises and teachers."""
