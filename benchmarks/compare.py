"""What became slower between two files of `make bench`: by more than a tenth, beyond the noise."""

import json
import sys
from pathlib import Path

SLOWER = 1.1


def slower(old: dict[str, dict[str, float]], new: dict[str, dict[str, float]]) -> list[str]:
    """Rows whose median fell by more than a tenth, and whose quartiles do not overlap."""
    lines = []
    for name in sorted(old.keys() & new.keys()):
        was, now = old[name], new[name]
        if now["median"] * SLOWER < was["median"] and now["high"] < was["low"]:
            share = now["median"] / was["median"]
            lines.append(f"{name}: {was['median']:.3g} to {now['median']:.3g}, {share:.0%}")
    return lines


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: compare.py OLD.json NEW.json (make bench-compare OLD=before.json)")
    old, new = (json.loads(Path(path).read_text()) for path in sys.argv[1:])
    lines = slower(old, new)
    print("\n".join(lines) or f"nothing is slower, of {len(old.keys() & new.keys())} numbers")
    for name in sorted(old.keys() - new.keys()):
        print(f"not measured again: {name}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
