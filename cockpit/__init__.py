"""cockpit: a terminal cockpit for people who tune web servers."""

import os

__version__ = "0.1.0"
# Name of the package for installers, and of cockpit's directories: `cockpit` is another project in most distributions.
DISTRIBUTION = "webcockpit"

# numpy's threads would compute beside the generator, at the start of each process and in the loops of its algebra.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
