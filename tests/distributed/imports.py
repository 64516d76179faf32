"""What ranks need, imported once. Shapes and types are checked in them too."""

import tests.conftest
import tests.distributed.programs
import tests.distributed.runs  # noqa: F401
