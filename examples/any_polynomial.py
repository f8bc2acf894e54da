"""A polynomial of any degree as a quadratic model, with as few bits as can be proved."""

import dimod

from qubayes.quadratize import quadratize

# Energy of a state: -(x0 x1 x2 x3) - (x2 x3 x4) + 2 x0 x4 + 0.5 x1
polynomial = dimod.BinaryPolynomial(
    {(0, 1, 2, 3): -1.0, (2, 3, 4): -1.0, (0, 4): 2.0, (1,): 0.5, (0,): 0.2}, dimod.BINARY
)
result = quadratize(polynomial)
print(f"{len(polynomial.variables)} variables, degree {max(map(len, polynomial))}")
print(
    f"{result.model.num_variables} bits, proved smallest: {result.proved}; "
    f"{result.model.num_interactions} couplers"
)

lowest = dimod.ExactSolver().sample(result.model).first
state = result.decoder.decode(lowest.sample)
print(
    f"least energy {lowest.energy:.3f} at {state}; "
    f"the polynomial there is {polynomial.energy(state):.3f}"
)
