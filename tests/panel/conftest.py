from __future__ import annotations

import pytest

from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.read import demo


@pytest.fixture(scope="session")
def table1() -> PanelAudit:
    """The audit of the bundled Table 1 with its own plan, ten thousand draws and all."""
    return audit_panel(*demo())
