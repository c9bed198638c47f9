// The types that this module's interface speaks of come along.
@_exported public import Scrubbing
@_exported public import StoreCoordination
@_exported public import StoreExport
