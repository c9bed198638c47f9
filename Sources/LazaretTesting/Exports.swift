// A test imports this module alone; the types that its interface speaks of come along.
@_exported public import ManagedObjectModel
@_exported public import Migration
@_exported public import PersistentStore
@_exported public import Platform
@_exported public import SystemPackage
