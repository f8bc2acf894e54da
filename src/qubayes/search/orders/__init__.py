"""Local search over orders of the variables, by simulated annealing.

`order_problem` holds candidate sets as the arrays that walks over orders read."""

from .walks import OrderProblem, holds, order_problem, random_order

__all__ = ["OrderProblem", "holds", "order_problem", "random_order"]
