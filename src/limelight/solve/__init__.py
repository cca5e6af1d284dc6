"""The arithmetic of training: a problem, a state, steps named as in the paper, and one loop.

The letters are the paper's: ``U`` and ``V`` hold the factors of users and items, ``s`` stands for
the mean user, ``w`` is the scaled dual variable and ``G`` a Gramian. Factor matrices are padded
with columns of zeros to a multiple of 16, which the kernels work in and which changes no number.
"""
