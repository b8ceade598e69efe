"""How a recovery can end."""

from enum import StrEnum


class RecoveryKind(StrEnum):
    """How a recovery ended, as stored."""

    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"
    VERSION_QUARANTINED = "VersionQuarantined"

    @property
    def wire(self) -> str:
        """The spelling of results and JSON."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.value).lstrip("_")
