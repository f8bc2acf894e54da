"""`Learned`: the result of `learn`; `Outputs`: its files; `RunFolder`: keeps finished stages."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from filelock import FileLock

from .. import __version__
from ..candidates import Candidates
from ..data import Dataset
from ..foundation.environment import versions
from ..foundation.errors import FormatError, QubayesError, SettingError, option
from ..foundation.files import (
    check_places,
    ending,
    json_object,
    lock_folder,
    remove_strays,
    replacing,
)
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.stop import Interrupt
from ..foundation.summary import aligned, counted
from ..foundation.workers import Workers
from ..network import Network, check_network_path, holds_tables, write_network
from ..report import (
    CloseNetworks,
    Consensus,
    EdgePosterior,
    EdgeShares,
    Outcome,
    Report,
    VertexFacts,
    draw,
    edge_strengths,
    write_report,
)
from ..search import Solution
from ..search.exact import Alternatives
from ..settings import LearnSettings
from .confidence import Confidence

if TYPE_CHECKING:
    from ..qubo import Formulation
    from ..qubo.subsets import Subsets
    from .posterior import Posterior

Result = TypeVar("Result")

log = logging.getLogger("qubayes")

# Files of a run folder, which outputs may not replace. Others are named by a checksum: blocks of
# candidate sets, bootstrap samples.
RUN_FILES = (
    "run.json",
    "run.lock",
    "choice.json",
    "first.json",
    "candidates.qbc",
    "solution.json",
    "posterior.draws",
)
LEAST_SHOWN = 0.01  # probability of an edge that the report shows
OUTPUT_ENDINGS = {"report": (".html", ".htm"), "trace": (".csv",), "draws": (".jsonl",)}


@dataclass
class MadeQubo:
    """What is made of the QUBO of a problem so far."""

    subsets: "Subsets | None" = None
    formulation: "Formulation | None" = None


@dataclass(frozen=True)
class Learned:
    """A network with its parameters, and the result of every stage.

    The QUBO of the same problem is made when it is first asked for: `formulation`, `subsets`,
    `bits`, `paper_bits`."""

    settings: LearnSettings
    dataset: Dataset = field(repr=False)
    candidates: Candidates = field(repr=False)
    solution: Solution
    network: Network = field(repr=False)
    confidence: Confidence | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)  # of each stage
    interrupted: bool = False  # before the time limit, all bootstrap samples, or all files
    source: str | None = None  # name of the file that the data came from
    # networks close to the best
    alternatives: Alternatives | None = field(default=None, repr=False)
    posterior: "Posterior | None" = field(default=None, repr=False)  # probabilities of edges
    qubo: MadeQubo = field(default_factory=MadeQubo, repr=False, compare=False)
    # how often edges are in the networks of single completed tables, where cells were missing
    completions: Confidence | None = None

    @property
    def subsets(self) -> "Subsets":
        """The subsets that the u bits stand for."""
        return self.find_subsets()

    def find_subsets(
        self, workers: Workers | None = None, on_progress: OnProgress = silent
    ) -> "Subsets":
        """Return `subsets`, searched for now with these workers if they were not before.

        Interrupted, it returns more subsets than needed, `complete` is false; they are not kept."""
        if self.qubo.subsets is not None:
            return self.qubo.subsets
        from ..qubo import quick_subsets

        found = quick_subsets(self.candidates, workers=workers, on_progress=on_progress)
        if found.complete:
            self.qubo.subsets = found
        return found

    @property
    def formulation(self) -> "Formulation":
        """The QUBO whose least energy is minus the best score."""
        return self.formulate()

    def formulate(
        self, workers: Workers | None = None, on_progress: OnProgress = silent
    ) -> "Formulation":
        """Return `formulation`, made now with these workers if it was not made before.

        It is kept unless the search for its subsets was interrupted."""
        if self.qubo.formulation is not None:
            return self.qubo.formulation
        from ..qubo import formulate

        subsets = self.find_subsets(workers, on_progress)
        made = formulate(self.candidates, subsets, workers=workers)
        _, energy = made.state_of(self.solution.choice)  # raises unless it is minus the score
        log.info("energy of the network's sample %.6f, equal to minus its score", energy)
        if subsets.complete:
            self.qubo.formulation = made
        return made

    @property
    def bits(self) -> dict[str, int]:
        """The numbers of u, r and z bits of the QUBO and their total, without making the QUBO."""
        from ..qubo import count_bits

        known = self.qubo.formulation
        return known.bits if known else count_bits(self.candidates, self.subsets)

    @property
    def paper_bits(self) -> dict[str, int]:
        """The bits that the paper's formulation has for the same subsets."""
        from ..qubo import count_bits

        return count_bits(self.candidates, self.subsets, order="scc", penalty="paper")

    def write_draws(self, path: str | Path) -> None:
        """Write the networks drawn from the posterior as JSON lines."""
        if self.posterior is None:
            raise SettingError(f"no networks were drawn; give {option('posterior', 20)}")
        self.posterior.draws.write(path)

    def report(self, path: str | Path) -> None:
        """Write a page (HTML) that shows the network and all that is known of it."""
        write_report(self.report_contents(), path)

    def report_contents(self, *, bits: bool = True) -> Report:
        """Return what the report shows of the result; without `bits` nothing of the QUBO."""
        solution = self.solution
        confidence = self.confidence
        confidences = {}
        if self.completions and not confidence:
            confidences = self.completions.of_edges(self.network)
        consensus = None
        if confidence:
            confidences = confidence.of_edges(self.network)
            consensus = Consensus(confidence.samples, confidence.of_edges(confidence.consensus))
        return Report(
            network=self.network,
            title=f"{self.source or 'Data'}: {self.dataset.n} variables, "
            f"{self.dataset.rows:,} rows",
            outcome=self._outcome(),
            strengths=edge_strengths(self.candidates, self.network.parents),
            told=self.settings.chosen_score.told(self.dataset),
            confidences=confidences,
            samples_are="bootstrap" if confidence or not self.completions else "completed-table",
            consensus=consensus,
            close=self._close_networks(),
            posterior=self._edge_posterior(),
            trace=(*solution.trace, (solution.seconds, solution.score)),
            marginals=self._marginals(),
            bits=self.bits if bits else None,
            paper_bits=self.paper_bits if bits else None,
            vertices=self._vertex_facts(bits=bits),
            provenance=self.provenance(),
        )

    def _outcome(self) -> Outcome:
        """Return the score, its name, and how the search ended."""
        stamp = self.solution.stamp
        score_name = stamp.score
        if stamp.ess is not None:
            score_name += f", equivalent sample size {stamp.ess:g}"
        if stamp.penalty is not None:
            score_name += f", {stamp.penalty:g} times the penalty"
        facts = ["score", "empty_score", "status", "solver", "seconds"]
        if not self.solution.only_grown:  # else the bound says nothing of other parent sets
            facts += ["bound", "gap"]
        return Outcome(
            score_name=score_name, **{fact: getattr(self.solution, fact) for fact in facts}
        )

    def _close_networks(self) -> CloseNetworks | None:
        close = self.alternatives
        if close is None:
            return None
        return CloseNetworks(len(close.networks), close.summary(), close.doubtful_edges())

    def _edge_posterior(self) -> EdgePosterior | None:
        """Return the probable edges, beside the bootstrap where there was one."""
        known, confidence = self.posterior, self.confidence
        if known is None:
            return None
        index = {name: vertex for vertex, name in enumerate(known.names)}
        joined = known.joined
        found = {}
        for (parent, child), share in known.edge_probabilities(LEAST_SHOWN).items():
            edge = index[parent], index[child]
            shares = EdgeShares(share, float(known.errors[edge]), float(joined[edge]))
            if confidence is not None:
                shares = shares._replace(bootstrap=confidence.of(*edge))
            found[edge] = shares
        facts = f"{known.title}; among sets of {known.among}; {known.verdict}."
        return EdgePosterior(facts, found)

    def _marginals(self) -> tuple[list[float], ...]:
        """Return for each variable the share of rows with each of its states."""
        dataset = self.dataset
        shares = []
        for v, arity in enumerate(dataset.arities.tolist()):
            weights = dataset.weights
            codes = dataset.codes[v]
            if dataset.has_gaps:
                codes = codes[~dataset.lacking(v)]
            counts = np.bincount(codes, weights, minlength=arity)[:arity]
            shares.append((counts / max(counts.sum(), 1)).tolist())
        return tuple(shares)

    def _vertex_facts(self, *, bits: bool) -> tuple[VertexFacts, ...]:
        candidates = self.candidates
        gains = candidates.scores[self.solution.choice] - candidates.base_scores
        subsets = self.subsets.families.sizes.tolist() if bits else [None] * candidates.n
        rows = zip(gains.tolist(), candidates.per_vertex.tolist(), subsets, strict=True)
        return tuple(VertexFacts(*row) for row in rows)

    def write_qubo(
        self, path: Path, workers: Workers | None = None, on_progress: OnProgress = silent
    ) -> None:
        """Write the QUBO of the same problem; the ending chooses the format."""
        self.formulate(workers, on_progress).write(path)

    def provenance(self) -> dict[str, Any]:
        """Return data, settings and versions: what is needed to repeat the run."""
        return {
            "data": {
                "file": self.source,
                "checksum": self.dataset.checksum,
                "checksum_of": "sha256 of names, states and codes",
                "rows": self.dataset.rows,
                "dropped_rows": self.dataset.dropped,
                "variables": self.dataset.n,
                "arities_from": self.dataset.arities_from,
            },
            "settings": self.settings.as_json(),
            "versions": versions(),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people; the QUBO only where it was made."""
        rows = [*self.solution.rows_of_network(), ("data", self._data_in_words())]
        if self.qubo.subsets is not None:
            size = counted(self.bits["total"], "binary variable")
            rows.append(
                ("QUBO", f"{size} ({self.paper_bits['total']:,} in the paper's formulation)")
            )
        if self.confidence:
            edges = counted(len(self.confidence.consensus.edges), "edge")
            samples = counted(self.confidence.samples, "sample")
            rows.append(("bootstrap", f"{samples}; {edges} in more than half of them"))
        if self.completions:
            edges = counted(len(self.completions.consensus.edges), "edge")
            tables = counted(self.completions.samples, "completed table")
            rows.append(("missing", f"{tables}; {edges} in more than half of their networks"))
        rows.append(("time", f"{sum(self.seconds.values()):.2f} s"))
        lines = [*self.solution.conclusion(), "", *aligned(rows)]
        if self.posterior is not None:
            lines += ["", *self.posterior.describe(5)]
        return [*lines, "", *self.alternatives.describe(5)] if self.alternatives else lines

    def _data_in_words(self) -> str:
        """Return the size of the data."""
        dataset, arities = self.dataset, self.dataset.arities
        words = counted(dataset.rows, "row")
        if dataset.kind == "discrete" and dataset.n:
            least, most = int(arities.min()), int(arities.max())
            range_of_states = f"{least} to {most}" if least < most else f"{most}"
            words += f", {range_of_states} states per variable"
        if dataset.missing is not None:
            how = "each family scored on its own rows" if dataset.has_gaps else "filled"
            words += f"; {100.0 * dataset.missing.mask.mean():.3g} % of the cells missing, {how}"
        if dataset.interventions is not None:
            words += (
                f"; {100.0 * dataset.interventions.mean():.3g} % of the cells set by experiments"
            )
        if dataset.dropped:
            words += f"; {counted(dataset.dropped, 'row')} with missing values left out"
        return words

    def __str__(self) -> str:
        """Return the network and what is proved of it in one line."""
        solution, edges = self.solution, counted(sum(map(len, self.network.parents)), "edge")
        known = f"score {solution.score:,.2f}, {solution.describe_gap()}"
        return f"{counted(self.dataset.n, 'variable')}, {edges}, {known}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines of `describe` and a picture of the network."""
        lines = f"<pre>{escape(chr(10).join(self.describe()))}</pre>"
        picture = draw(self.network, edge_strengths(self.candidates, self.network.parents))
        style = "max-width: 900px; max-height: 640px; overflow: auto"
        return f'{lines}<div style="{style}">{picture}</div>'

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes learn --json` prints; bits only where the QUBO was made."""
        return {
            **self.solution.as_json(),
            "interrupted": self.interrupted,
            "bits": self._bits_as_json(),
            "provenance": self.provenance(),
            "confidence": self.confidence.as_json(self.network) if self.confidence else None,
            **self._completions_as_json(),
            "alternatives": self.alternatives and self.alternatives.as_json(),
            "posterior": None if self.posterior is None else self.posterior.as_json(),
        }

    def _bits_as_json(self) -> dict[str, dict[str, int]] | None:
        """Return the numbers of bits, ours and the paper's, where the QUBO was made."""
        if self.qubo.subsets is None:
            return None
        return {"ours": self.bits, "paper": self.paper_bits}

    def _completions_as_json(self) -> dict[str, Any]:
        """Return the support of edges by completed tables; nothing where no cell was missing."""
        found = self.completions
        return {} if found is None else {"completions": found.as_json(self.network)}


class RunFolder:
    """The folder of a run: the result of every finished stage, so that the run can be resumed.

    It is made if it does not exist, and locked inside `with`; without a path nothing is kept.
    `run.json` holds for each file a checksum of the data, settings and version that it was made
    from; a file with another checksum is made again. Each file is whole or absent."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock: FileLock | None = None
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(
                f"cannot make the run folder {path}: {error.strerror}; choose another place"
            ) from error

    def __enter__(self) -> "RunFolder":
        if self.path is not None:
            self._lock = lock_folder(self.path)
            if self._lock is None:
                raise QubayesError(
                    f"another run works in {self.path} now; "
                    "wait for its end, or choose another folder"
                )
            remove_strays(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def file(self, name: str) -> Path | None:
        """Return the path of the file of that name; None if nothing is kept."""
        return self.path / name if self.path else None

    def kept(
        self,
        name: str,
        depends_on: dict[str, Any],
        make: Callable[[], Result],
        read: Callable[[Path], Result],
        write: Callable[[Result, Path], None],
    ) -> Result:
        """Return what the file of that name holds if its inputs have the same checksum.

        Otherwise compute the result and write the file.
        """
        place = self.file(name)
        if place is None:
            return make()
        key = key_of(depends_on)
        if self._keys().get(name) == key and place.exists():
            try:
                return read(place)
            except QubayesError:
                pass  # damaged: made again
        result = make()
        write(result, place)
        self._write({**self._keys(), name: key})
        return result

    def forget(self, name: str) -> None:
        """Mark the file of that name as unfinished: the next run makes it again."""
        if self.path:
            self._write({other: key for other, key in self._keys().items() if other != name})

    def note(self, name: str, depends_on: dict[str, Any]) -> None:
        """Remember under this name what the last run depended on."""
        if self.path and not self.noted(name, depends_on):
            self._write({**self._keys(), name: key_of(depends_on)})

    def noted(self, name: str, depends_on: dict[str, Any]) -> bool:
        """Return whether the last run depended on the same."""
        return self._keys().get(name) == key_of(depends_on)

    def _keys(self) -> dict[str, Any]:
        place = self.file("run.json")
        if place is None or not place.exists():
            return {}
        try:
            return json_object(place.read_bytes())
        except (QubayesError, OSError, ValueError):
            return {}

    def _write(self, keys: dict[str, Any]) -> None:
        place = self.file("run.json")
        assert place is not None
        with replacing(place) as file:
            json.dump(keys, file, indent=2)


def key_of(depends_on: dict[str, Any]) -> str:
    """Return a checksum of what a result was made from, and of this version."""
    text = json.dumps({"version": __version__, **depends_on}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Written(NamedTuple):
    """What `Outputs.write` did."""

    files: dict[Path, str]  # and what each of them is, in words
    failure: QubayesError | None  # why the first file that could not be written was not
    interrupted: str  # what Ctrl-C left out, in words; empty without Ctrl-C


@dataclass(frozen=True, slots=True)
class Outputs:
    """Paths of the files to write; None for what is not wanted."""

    network: Path | None = None  # the ending chooses the format
    report: Path | None = None
    trace: Path | None = None  # score over time
    qubo: Path | None = None  # the ending chooses the format
    draws: Path | None = None  # networks drawn from the posterior

    def check(self, inputs: Iterable[Path | None] = (), run_dir: Path | None = None) -> None:
        """Raise if a file cannot be written or would replace another one, before any long work."""
        if run_dir is not None:
            RunFolder(run_dir)  # is made: outputs may go there
            inputs = [*inputs, *(run_dir / name for name in RUN_FILES)]
        check_places([getattr(self, each.name) for each in fields(self)], inputs)
        if self.network is not None:
            check_network_path(self.network)
        for name, allowed in OUTPUT_ENDINGS.items():
            path = getattr(self, name)
            if path is not None and path.suffix.lower() not in allowed:
                raise FormatError(
                    f"the {name} {path} has another ending; give it the ending {allowed[0]}"
                )
        if self.qubo is not None:
            from ..machines import MODEL_ENDINGS  # a network alone needs no QUBO

            if ending(self.qubo) not in MODEL_ENDINGS:
                raise FormatError(
                    f"{self.qubo} does not have the ending of a model; "
                    f"give one of {', '.join(MODEL_ENDINGS)}"
                )

    @staticmethod
    def _write_network(network: Network, path: Path) -> None:
        """Write the network; if that fails, write its graph as JSON instead, and raise."""
        try:
            write_network(network, path)
        except QubayesError as error:
            beside = path.with_name(f"{path.name}.json")
            try:
                write_network(replace(network, tables=None), beside)
            except QubayesError:
                raise error from None
            raise type(error)(f"{error}; its graph is in {beside}") from None

    @staticmethod
    def _in_words(name: str, path: Path, network: Network) -> str:
        """Return what the written file is."""
        if name == "network":
            kept = holds_tables(path) and network.tables is not None
            return "network with probabilities" if kept else "network without probabilities"
        if name == "qubo":
            from ..qubo import companion_of  # a network alone needs no QUBO

            return f"QUBO; `qubayes decode` also needs {companion_of(path).name}"
        return {
            "report": "report, open it in a browser",
            "trace": "score over time",
            "draws": "networks drawn from the posterior",
        }[name]

    def write(
        self,
        learned: Learned,
        workers: Workers | None = None,
        on_progress: OnProgress = silent,
        interrupt: Interrupt | None = None,
    ) -> Written:
        """Write the files. One that cannot be written keeps none of the others from being written.

        Ctrl-C leaves out the QUBO if that was not begun, and the bits in the report if subsets are
        searched for. The other files are finished; a second Ctrl-C acts at once."""
        interrupt = Interrupt() if interrupt is None else interrupt
        with interrupt.listening():
            written, failure, left_out = self._write_all(learned, interrupt, workers, on_progress)
        return Written(written, failure, left_out or ("nothing is left out" if interrupt else ""))

    @staticmethod
    def _why_skipped(name: str, learned: Learned, without_qubo: bool) -> str:
        """Return why the file of this name is not written; nothing if it is."""
        if name == "qubo" and without_qubo:
            return "the QUBO is left out"
        if name == "draws" and learned.posterior is None:
            return "no networks were drawn"
        return ""

    def _write_all(
        self,
        learned: Learned,
        interrupt: Interrupt,
        workers: Workers | None,
        on_progress: OnProgress,
    ) -> Written:
        left_out = ""
        needs_subsets = bool(self.report or self.qubo)
        incomplete = needs_subsets and not learned.find_subsets(workers, on_progress).complete
        if incomplete:
            left_out = "the QUBO is left out" if self.qubo else "the report is without bits"
        writers: dict[str, Callable[[Path], None]] = {
            "network": lambda path: self._write_network(learned.network, path),
            "report": lambda path: write_report(learned.report_contents(bits=not incomplete), path),
            "trace": learned.solution.write_trace,
            "draws": learned.write_draws,
            "qubo": lambda path: learned.write_qubo(path, workers, on_progress),
        }
        written: dict[Path, str] = {}
        failure: QubayesError | None = None
        wanted = {name: path for name in writers if (path := getattr(self, name)) is not None}
        for number, (name, path) in enumerate(wanted.items()):
            on_progress(Progress("files", number, len(wanted), path.name))
            skipped = self._why_skipped(name, learned, incomplete or bool(interrupt))
            if skipped:
                left_out = skipped
                continue
            try:
                writers[name](path)
                written[path] = self._in_words(name, path, learned.network)
            except QubayesError as error:
                failure = failure or error
        return Written(written, failure, left_out)
