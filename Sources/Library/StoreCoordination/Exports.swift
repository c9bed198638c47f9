// An app imports this module alone; the types that its interface speaks of come along.
@_exported public import AgeEncryption
@_exported public import Backup
@_exported public import BackupRestore
@_exported public import Examination
@_exported public import ManagedObjectModel
@_exported public import Migration
@_exported public import PageRecovery
@_exported public import PersistentStore
@_exported public import Quarantine
@_exported public import SQLiteFormat
@_exported public import Salvage
@_exported public import StoreFiles
@_exported public import SupportBundle
@_exported public import SystemPackage
