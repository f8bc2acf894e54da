"""The two local searches by row weighting, step by step from their definitions, with the random numbers of kernels."""


def take_out(items, item):
    """Remove an item from a list; the last one takes its place."""
    place = items.index(item)
    items[place] = items[-1]
    items.pop()


class Choice:
    """Rows (guard, options), options sets of one or two numbers; `improve` of quadratize/local_search.py."""

    def __init__(self, rows, chosen, sets, draws):
        self.rows, self.draws = rows, draws
        self.picked, self.unsatisfied = sorted(chosen), []
        self.weight, self.stamp = [1] * len(rows), [-9] * sets
        # (row, number of the option), those that name the set first before those that name it
        # second
        self.uses = [
            [(r, o) for side in (0, 1) for r, (_, options) in enumerate(rows) for o, option in enumerate(options)
             if len(option) > side and option[side] == s]
            for s in range(sets)
        ]  # fmt: skip
        self.have = [[set(option) & set(chosen) for option in options] for _, options in rows]

    def complete(self, row):
        return sum(
            have == set(option)
            for have, option in zip(self.have[row], self.rows[row][1], strict=True)
        )

    def asked(self, row):
        return self.rows[row][0] < 0 or self.rows[row][0] in self.picked

    def note(self, row):
        wrong = self.asked(row) and not self.complete(row)
        if wrong and row not in self.unsatisfied:
            self.unsatisfied.append(row)
        elif not wrong and row in self.unsatisfied:
            take_out(self.unsatisfied, row)

    def flip(self, changed, step):
        self.stamp[changed] = step
        if changed in self.picked:
            take_out(self.picked, changed)
        else:
            self.picked.append(changed)
        for row, option in self.uses[changed]:
            self.have[row][option] ^= {changed}
            self.note(row)
        for row, (guard, _) in enumerate(self.rows):
            if guard == changed:
                self.note(row)

    def gain(self, s):
        total = 0
        for row, option in self.uses[s]:
            lacking = set(self.rows[row][1][option]) - self.have[row][option]
            if s in self.picked:
                total += self.weight[row] * (
                    not lacking and self.complete(row) == 1 and self.asked(row)
                )
            else:
                total += self.weight[row] * (lacking == {s} and row in self.unsatisfied)
        return total - sum(
            self.weight[r] for r, (g, _) in enumerate(self.rows) if g == s and not self.complete(r)
        )

    def draw(self, items):
        return items[self.draws.below(len(items))]

    def to_drop(self, step, tried):
        drawn = [self.draw(self.picked) for _ in range(tried)]
        old = [s for s in drawn if self.stamp[s] < step - 2]
        return (
            min(old, key=lambda s: (self.gain(s), self.stamp[s])) if old else self.draw(self.picked)
        )

    def to_add(self, step):
        named = [s for option in self.rows[self.draw(self.unsatisfied)][1] for s in option]
        free = [s for s in named if s not in self.picked and self.stamp[s] != step]
        return min(free, key=lambda s: (-self.gain(s), self.stamp[s]), default=None)

    def improve(self, steps, tried):
        """Yield the sets of the smallest choice so far after each step."""
        limit, best = len(self.picked), set(self.picked)
        for step in range(steps):
            if not self.unsatisfied:
                best, limit = set(self.picked), len(self.picked) - 1
                if limit < 0:
                    break
            while self.picked and len(self.picked) >= limit:
                self.flip(self.to_drop(step, tried), step)
            if self.unsatisfied:
                added = self.to_add(step)
                if added is not None:
                    self.flip(added, step)
            for row in self.unsatisfied:
                self.weight[row] += 1
            yield best


class Cover:
    """Rows and columns are sets; `search` of qubo/subsets/cover_search.py.

    `closed` are columns that every cover has; `inside` are the numbers of the open columns in each
    row, in their order."""

    def __init__(self, rows, columns, closed, inside, draws):
        self.rows, self.columns, self.closed, self.inside, self.draws = (
            rows,
            columns,
            closed,
            inside,
            draws,
        )
        self.held = [[r for r, own in enumerate(inside) if c in own] for c in range(len(columns))]
        self.chosen, self.uncovered = [], list(range(len(rows)))
        self.weight, self.stamp = [1] * len(rows), [0] * len(columns)
        self.best, self.found, self.work, self.step = set(), set(), 0, 0

    def covered(self, row, chosen):
        parts = [own for own in self.closed if own <= self.rows[row]]
        parts += [self.columns[c] for c in self.inside[row] if c in chosen]
        return any(a | b == self.rows[row] for a in parts for b in parts)

    def score(self, column):
        """The weight of the rows that a flip of the column covers or uncovers."""
        now, then = set(self.chosen), set(self.chosen) ^ {column}
        return sum(
            self.weight[r]
            for r in self.held[column]
            if self.covered(r, now) != self.covered(r, then)
        )

    def flip(self, column):
        if column in self.chosen:
            take_out(self.chosen, column)
        else:
            self.chosen.append(column)
        self.work += len(self.held[column])
        for row in self.held[column]:
            if self.covered(row, self.chosen) and row in self.uncovered:
                take_out(self.uncovered, row)
            elif not self.covered(row, self.chosen) and row not in self.uncovered:
                self.uncovered.append(row)

    def best_for(self, row, step):
        able = [
            c
            for c in self.inside[row]
            if c not in self.chosen and self.covered(row, {*self.chosen, c})
        ]
        free = [c for c in able if self.stamp[c] != step or c == able[-1]]
        return min(free, key=lambda c: (-self.score(c), self.stamp[c]))

    def cheapest(self, barred):
        self.work += len(self.chosen) // 8
        free = [c for c in self.chosen if self.stamp[c] != barred or len(self.chosen) == 1]
        return min(free, key=lambda c: (self.score(c), self.stamp[c]), default=self.chosen[0])

    def descend(self, patience):
        """The size of the smallest cover met; it is left in `found`."""
        size, last = None, self.step
        while size is None or self.step - last <= patience:
            self.step += 1
            if not self.uncovered:
                while self.chosen and self.score(cheap := self.cheapest(None)) == 0:
                    self.flip(cheap)
                if size is None or len(self.chosen) < size:
                    self.found, size, last = set(self.chosen), len(self.chosen), self.step
                if size == 0:
                    break
            if size is not None:
                gone = self.cheapest(self.step - 1)
                self.flip(gone)
                self.stamp[gone] = self.step
                if not self.uncovered:
                    continue
            added = self.best_for(self.uncovered[self.draws.below(len(self.uncovered))], self.step)
            self.flip(added)
            self.stamp[added] = self.step
            if size is not None:
                for row in self.uncovered:
                    self.weight[row] += 1
        return size

    def kick(self, groups, number):
        group = groups[number]
        if group:
            return [c for c in group if number < len(groups) - 1 or c not in self.chosen]
        mixed = list(self.chosen)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.draws.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed[: 1 + len(mixed) // 10]

    def search(self, groups, work, patience):
        """Descend, and kick the best cover, until so much work is done."""
        number = len(groups) - 1
        while True:
            size = self.descend(patience)
            if not self.best or size <= len(self.best):
                self.best = set(self.found)
            if self.work >= work or len(self.best) <= 1:
                return
            self.weight = [1] * len(self.rows)
            for column in sorted(self.best ^ set(self.chosen)):
                self.flip(column)
            for column in self.kick(groups, number):
                self.flip(column)
                self.stamp[column] = self.step
            number = self.draws.below(len(groups))
