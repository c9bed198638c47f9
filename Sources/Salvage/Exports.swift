// Whoever rebuilds stores sees what is found in them; the errors, options and reports of a salvage are those of finding rows.
@_exported public import PageRecovery
