import ArgumentParser
public import Backup
internal import Lazaret
internal import ManagedObjectModel
internal import Migration
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage
internal import SupportBundle

extension BackupCompression: ExpressibleByArgument {}
