"""What enable() did, and how it is undone.

A module's forward is replaced by a bound method in the module's own __dict__: a function of `self`
that reads the module's attributes at each call, so that deepcopy binds it to the copy, pickle
stores the class's own forward, and weights, layers and hooks put in later are seen. What one
process has once (an operator's kernel, a function of another module, the name torch.optim.AdamW) is
shared: installed with the first Replacement that wants it, taken out with the last. A disabled
Replacement is inert, also where somebody has kept or wrapped what it put in place; order does not
matter. What undoes a replacement is kept before the replacement is made, so that one interrupted in
between is undone, too; an undo that fails keeps no other from being done.
"""
import contextlib
import threading
import types

from .binding import library

_active = []  # the Replacements in force, the oldest first
_turn = threading.RLock()  # held by whoever changes them or what the process has once


class Entry:
    """One thing replaced: where, what by, and whether it has run; `count` tells how often, where
    that is not Python's to see."""

    def __init__(self, where, what, count=int):
        self.where, self.what, self._ran = where, what, False
        self._count, self._before = count, count()

    @property
    def called(self):
        return self._ran or self._count() > self._before

    @called.setter
    def called(self, ran):
        self._ran = ran

    def end(self):
        """What runs from now on is another's."""
        self.called, self._count = self.called, int

    def __iter__(self):
        return iter((self.where, self.what))


class Shared:
    """Something there is once in a process. `install` puts it in place and returns what takes it
    out; `count`: see Entry."""

    def __init__(self, install, count=int):
        self.install, self.count, self.users, self.remove = install, count, [], None

    def add(self, entry):
        with _turn:
            if not self.users:
                self.remove = self.install(self)
            self.users.append(entry)

    def drop(self, entry):
        """Of an entry that was never added, nothing is to be taken out."""
        with _turn:
            if entry not in self.users:
                return
            entry.end()
            self.users.remove(entry)
            if not self.users:
                self.remove()

    def called(self):
        for entry in self.users:
            entry.called = True


def attribute(owner, name, value_of):
    """An install() that sets owner.name to value_of(what was there, shared). Taken out only if it
    is still there."""

    def install(shared):
        before = getattr(owner, name)
        value = value_of(before, shared)
        setattr(owner, name, value)

        def remove():
            if getattr(owner, name) is value:
                setattr(owner, name, before)

        return remove

    return install


class Replacement:
    """.replaced, .never_called and .left are lists of (where, what or why); print it to read them;
    disable() undoes it all."""

    def __init__(self, level):
        self.entries, self.left, self.active, self.level, self._undo = [], [], True, level, []
        with _turn:
            before = library().level_before if _active else library().get("level")
            library().configure("level", level)
            library().level_before = before
            _active.append(self)

    @property
    def replaced(self):
        return [(e.where, e.what) for e in self.entries]

    @property
    def never_called(self):
        return [(e.where, e.what) for e in self.entries if not e.called]

    def leave(self, where, why):
        self.left.append((where, why))

    def share(self, shared, where, what):
        entry = Entry(where, what, shared.count)
        self._undo.append(lambda: shared.drop(entry))
        shared.add(entry)
        self.entries.append(entry)

    def forward(self, module, where, what, compute):
        """Lets compute(module, *arguments) run for the module's forward; where it gives None, the
        class's own runs."""
        entry, done, original = Entry(
            where, what), self, type(module).forward  # unless somebody gives the class another

        def forward(self, *arguments, **named):
            if done.active and not named and type(self).forward is original:
                result = compute(self, *arguments)
                if result is not None:
                    entry.called = True
                    return result
            return type(self).forward(self, *arguments, **named)

        forward.by_velo = self
        bound = types.MethodType(forward, module)

        def undo():
            if module.__dict__.get("forward") is bound:
                del module.__dict__["forward"]

        self._undo.append(undo)
        module.__dict__["forward"] = bound
        self.entries.append(entry)

    def disable(self):
        with _turn:
            if not self.active:
                return
            self.active = False
            _active.remove(self)
            with contextlib.ExitStack(
            ) as undoing:  # which goes on behind an undo that raises, and raises it at the end
                undoing.callback(library().configure, "level",
                                 _active[-1].level if _active else library().level_before)
                for undo in self._undo:
                    undoing.callback(undo)
            self._undo = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disable()

    def __str__(self):
        parts = (("velo replaced:", [e for e in self.entries if e.called]),
                 ("velo replaced, and has not run yet: not called, or with too little to pay:",
                  [e for e in self.entries if not e.called]), ("and left:", self.left))
        return "\n".join(line for title, entries in parts if entries for line in [title] +
                         [f"  {where}: {text}" for where, text in _grouped(entries)])


def _grouped(entries):
    """Entries of one text in one line: the layers of a model say the same thing many times."""
    places = {}
    for where, text in entries:
        places.setdefault(text, []).append(where)
    return [(where[0] if len(where) == 1 else f"{where[0]} and {len(where) - 1} more", text)
            for text, where in places.items()]
