"""`python -m prequential.cli`, the same as `preq`."""

from prequential.cli import main

raise SystemExit(main())
