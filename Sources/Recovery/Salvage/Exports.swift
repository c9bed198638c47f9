// The errors, options and reports of a salvage are those of finding rows, so that callers of this module see both.
@_exported public import PageRecovery
