// Tests import only this module, so re-export the types of its interface.
@_exported public import ManagedObjectModel
@_exported public import Migration
@_exported public import PersistentStore
@_exported public import Platform
@_exported public import SystemPackage
