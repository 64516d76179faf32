"""What things in rooms are: the classes of Stanford 2D-3D-Semantics."""

CLASSES = (
    *("beam", "board", "bookcase", "ceiling", "chair", "clutter", "column", "door", "floor"),
    *("sofa", "table", "wall", "window", "<UNK>"),
)
"""What a label stands for; the last is what nobody labeled."""
UNKNOWN = CLASSES.index("<UNK>")
