"""Java for a process of minutes: compiled lightly, and cleared up by one thread. To be imported before Java starts."""

from __future__ import annotations

import jnius_config

from sdretrieval.core.jvm import BRIEF

jnius_config.add_options(*BRIEF)
