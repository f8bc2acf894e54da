"""The figures that the paper prints, table by table, to stand beside ours."""

from typing import NamedTuple


class Printed(NamedTuple):
    """Mean and standard deviation over the paper's five trials."""

    mean: float
    deviation: float = 0.0


class Instance(NamedTuple):
    """A data set of the paper and the largest number of parents."""

    name: str
    max_parents: int

    def __str__(self) -> str:
        return f"{self.name}:{self.max_parents}"


def _pairs(*numbers: float) -> tuple[Printed, ...]:
    return tuple(
        Printed(mean, deviation)
        for mean, deviation in zip(numbers[::2], numbers[1::2], strict=True)
    )


INSTANCES = tuple(
    Instance(name, m)
    for name, m in (
        *(("alarm", 4), ("barley", 4), ("hailfinder", 4), ("hepar2", 4)),
        *(("chess", 2), ("chess", 3), ("win95pts", 2), ("win95pts", 3)),
        *(("pathfinder", 2), ("pathfinder", 3), ("mushroom", 2), ("connect", 2)),
        *(("connect", 3), ("munin1", 2), ("andes", 2), ("andes", 3)),
    )
)

# Table D.2 (`CPSI`): number of candidate parent sets, seconds.
CANDIDATES = dict(
    zip(
        INSTANCES,
        (
            _pairs(2291, 210, 1700, 11),
            _pairs(355, 12, 235015, 95243),
            _pairs(692, 16, 90247, 3334),
            _pairs(689, 59, 40216, 534),
            _pairs(32570, 1686, 59, 0),
            _pairs(236285, 15636, 5463, 284),
            _pairs(9231, 665, 60, 3),
            _pairs(43657, 3850, 2404, 51),
            _pairs(50962, 3254, 320, 5),
            _pairs(398131, 47889, 44991, 3426),
            _pairs(273526, 12647, 689, 26),
            _pairs(76996, 4381, 331, 7),
            _pairs(710684, 73964, 83361, 6624),
            _pairs(135570, 6765, 2466, 29),
            _pairs(7424, 219, 852, 52),
            _pairs(14195, 556, 104683, 3855),
        ),
        strict=True,
    )
)

# Table 1 (`decom1`): bits and seconds of O'Gorman's formulation, of IP only and of IP + Algorithm
# 2.
BITS = dict(
    zip(
        INSTANCES,
        (
            _pairs(3982, 346, 272, 61, 1373, 46, 61, 29, 1373, 46, 14, 2),
            _pairs(1826, 279, 271, 149, 995, 143, 11, 2, 995, 143, 11, 2),
            _pairs(2374, 31, 52, 24, 1913, 6, 4, 1, 1913, 6, 4, 1),
            _pairs(3629, 423, 51, 16, 2616, 133, 3, 0, 2616, 133, 2, 0),
            _pairs(7040, 167, 63, 2, 6964, 165, 89, 4, 6964, 165, 103, 4),
            _pairs(80116, 3014, 3229, 151, 26355, 1403, 7268, 492, 23662, 1103, 5567, 376),
            _pairs(5150, 39, 27, 2, 5028, 42, 33, 3, 5028, 42, 37, 4),
            _pairs(37705, 1935, 1223, 90, 9220, 398, 1036, 117, 9025, 333, 890, 105),
            _pairs(10831, 382, 178, 8, 10725, 379, 259, 30, 10725, 379, 284, 20),
            _pairs(107725, 5329, 11695, 834, 38245, 3242, 30707, 4322, 34448, 3016, 21364, 3773),
            _pairs(18050, 508, 318, 13, 17930, 506, 681, 32, 17930, 506, 513, 23),
            _pairs(15155, 334, 137, 9, 14978, 340, 228, 17, 14978, 340, 240, 12),
            _pairs(179788, 6242, 9897, 602, 64533, 4352, 30381, 4267, 58247, 4053, 20106, 2661),
            _pairs(25180, 266, 699, 20, 25001, 268, 953, 75, 25001, 268, 1079, 67),
            _pairs(29502, 171, 40, 1, 28810, 182, 249, 37, 28810, 182, 250, 35),
            _pairs(92838, 3735, 2182, 289, 31162, 136, 504, 132, 31162, 136, 217, 8),
        ),
        strict=True,
    )
)

# Table 2 (`decom20`, IP + Algorithm 2): seconds of preparing, of solving, of assembling.
STEPS = dict(
    zip(
        INSTANCES,
        (
            _pairs(1, 0, 3, 1, 10, 1),
            _pairs(0, 0, 0, 0, 11, 2),
            _pairs(0, 0, 0, 0, 4, 1),
            _pairs(0, 0, 0, 0, 2, 0),
            _pairs(2, 0, 0, 0, 100, 4),
            _pairs(406, 49, 2554, 199, 2608, 195),
            _pairs(1, 0, 0, 0, 36, 4),
            _pairs(45, 5, 398, 82, 446, 54),
            _pairs(3, 0, 0, 0, 281, 19),
            _pairs(1407, 272, 1679, 184, 18278, 3349),
            _pairs(23, 1, 0, 0, 490, 22),
            _pairs(5, 0, 0, 0, 235, 12),
            _pairs(2472, 436, 4129, 148, 13505, 2114),
            _pairs(12, 1, 0, 0, 1067, 67),
            _pairs(1, 0, 0, 0, 249, 35),
            _pairs(6, 1, 2, 1, 209, 8),
        ),
        strict=True,
    )
)

# Table D.5 (`detail2`, IP only): the same three.
STEPS_IP_ONLY = dict(
    zip(
        INSTANCES,
        (
            _pairs(1, 0, 50, 28, 10, 1),
            _pairs(0, 0, 1, 0, 10, 2),
            _pairs(0, 0, 0, 0, 4, 1),
            _pairs(0, 0, 0, 0, 2, 0),
            _pairs(6, 0, 0, 0, 83, 3),
            _pairs(639, 58, 3150, 167, 3480, 315),
            _pairs(2, 2, 0, 0, 31, 1),
            _pairs(49, 8, 530, 73, 457, 66),
            _pairs(18, 2, 0, 0, 241, 29),
            _pairs(3844, 750, 2132, 129, 24731, 3458),
            _pairs(277, 19, 1, 0, 403, 14),
            _pairs(26, 3, 0, 0, 203, 15),
            _pairs(6219, 1396, 4568, 177, 19595, 2743),
            _pairs(78, 6, 0, 0, 875, 71),
            _pairs(1, 0, 0, 0, 247, 37),
            _pairs(4, 0, 7, 1, 493, 131),
        ),
        strict=True,
    )
)

# Table 3 (`decom3`): wins in five trials. The paper's SAQ and ASO never won.
PAPER_SOLVERS = {
    "digital": "DAQ",
    "bqp": "GOQ",
    "hillclimb": "HCS",
    "order-sa": "SAO",
    "exact": "GOB",
    "sa-flips": "SAQ",
    "asobs": "ASO",
}
WINS = {
    instance: dict(zip(("digital", "bqp", "hillclimb", "order-sa", "exact"), wins, strict=True))
    for instance, wins in zip(
        INSTANCES,
        (
            *((0, 0, 0, 0, 5), (0, 0, 0, 0, 5), (0, 0, 0, 0, 5), (0, 0, 0, 0, 5)),
            *((5, 0, 0, 0, 0), (5, 0, 0, 0, 0), (1, 0, 0, 0, 4), (2, 0, 0, 3, 0)),
            *((4, 0, 0, 1, 0), (5, 0, 0, 0, 0), (5, 0, 0, 0, 0), (5, 0, 0, 0, 0)),
            *((2, 1, 1, 1, 0), (5, 0, 0, 0, 0), (5, 0, 0, 0, 0), (5, 0, 0, 0, 0)),
        ),
        strict=True,
    )
}
