"""Counts that decide which method the proof of a component tries, and for how long.

They depend on neither the clock nor the load of the machine, so that neither changes the path."""

from typing import NamedTuple


class Effort(NamedTuple):
    """How long one relaxation is worked on."""

    rounds: int
    patience: int  # rounds in which the bound may stall: rise by less than 0.5 % of the gap
    moves: int  # of the search over orders, per vertex, from the order that each solution suggests
    lightly: bool = False  # try proofs that look easy without that search


class Plan(NamedTuple):
    """Limits of the methods; `ComponentProof.prove` describes their order."""

    # Column generation and cuts
    first_sets: int = 10  # columns of each vertex in the first program
    new_sets: int = 5  # columns of each vertex that a round adds
    few_cuts: int = 50  # k = 2 and zero-half cuts are separated if fewer cuts with k = 1 are found
    least_violation: float = 1e-3  # of a cut with k = 1; ten times that for the others
    idle_rounds: int = 8  # a cut is removed after its weight was 0 in this many rounds
    most_vertices: int = 2_000  # of a component: separation takes memory as n^2, time as n^3

    # Search over orders
    easy_rounds: int = 30  # a component that looks easy is tried so long without this search
    easy_vertices: int = 100  # a larger component does not look easy,
    easy_sets: int = 5_000  # nor one with more sets, if its order graph can be searched,
    easy_sets_of_large: int = 30_000  # or with more than these, if not
    cheap_sets: int = 30_000  # fewer moves are made if there are more sets: a move reads all sets
    first_moves: int = 2_000  # per vertex, of the first search
    node_moves: int = 100  # per vertex, at a node of the branching

    # Search in the order graph
    order_graph_vertices: int = 63  # of a component: a state is a word, and one word is left over
    ascents: int = 6  # greedy dual ascents; the best one counts
    rounds_before_search: int = 20  # of the relaxation, before the second search
    round_growth: float = 1.3  # factor of the number of rounds from one search to the next
    states_per_round: int = 12_000  # states of a search, for each round so far
    most_states: int = 6_000_000  # of a search after greedy duals, and of the last one: 190 MB
    stages: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # rising thresholds, as shares of the gap
    first_stage_share: int = 8  # the first stage has 1 / 8 of the states: after a longer one the
    # next is never begun
    stage_slowdown: float = 0.75  # factor of the growth of the states from one stage to the next

    # Efforts of the relaxation
    root: Effort = Effort(1_000_000, 8, 100, lightly=True)
    thorough: Effort = Effort(1_000_000, 40, 100)  # for bounds and presolve, without branching
    node: Effort = Effort(6, 2, 0)


PLAN = Plan()
