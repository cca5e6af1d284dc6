"""The published preparation of the paper's data, written plainly: filters and split."""

from collections import Counter

import numpy as np


def keep_common(rows, *, users=0, items=0, order):
    """Keep (user, item) rows of users and items with so many of them.

    ``order`` says whose rows are counted first; "together" counts both before it drops any.
    """
    first, second = {
        "together": ("both", ""),
        "items-first": ("items", "users"),
        "users-first": ("users", "items"),
    }[order]
    for whose in (first, second) if second else (first,):
        by_user, by_item = (Counter(row[side] for row in rows) for side in (0, 1))
        rows = [
            (user, item)
            for user, item in rows
            if (whose == "items" or by_user[user] >= users)
            and (whose == "users" or by_item[item] >= items)
        ]
    return rows


def published(rows, validation, test, seed):
    """The protocol as its script has it, over (user, item) rows in file order."""
    users = sorted({user for user, _ in rows})
    users = [users[i] for i in np.random.RandomState(seed).permutation(len(users))]
    uid = {user: i for i, user in enumerate(users)}
    n_train = len(users) - validation - test
    parts = users[:n_train], users[n_train : n_train + validation], users[n_train + validation :]
    by_user = sorted(rows, key=lambda row: row[0])
    items = list(dict.fromkeys(item for user, item in by_user if user in parts[0]))
    sid = {item: i for i, item in enumerate(items)}
    tables = [[(uid[user], sid[item]) for user, item in by_user if user in parts[0]]]
    for part in parts[1:]:
        draw = np.random.RandomState(seed)
        history, targets = [], []
        for user in sorted(part):
            own = [(uid[user], sid[i]) for u, i in by_user if u == user and i in sid]
            chosen = set()
            if len(own) >= 5:
                chosen = set(draw.choice(len(own), size=int(0.2 * len(own)), replace=False))
            history += [row for n, row in enumerate(own) if n not in chosen]
            targets += [row for n, row in enumerate(own) if n in chosen]
        tables += [history, targets]
    return tables, items
