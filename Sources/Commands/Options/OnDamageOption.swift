import ArgumentParser
internal import Backup
public import Lazaret
internal import ManagedObjectModel
internal import Migration
public import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import Salvage
internal import SupportBundle

extension OpeningPolicy.Remedy: ExpressibleByArgument {
  /// Parses the short words of the command line, or the library's own.
  public init?(argument: String) {
    switch argument {
    case "later": self = .salvageLater
    case "replace": self = .emptyStore
    default: self.init(rawValue: argument)
    }
  }

  /// The values listed in help and errors.
  public static var allValueStrings: [String] { ["salvage", "later", "replace", "refuse"] }
}

extension OpeningPolicy.RepairRule: ExpressibleByArgument {}

extension Examination.Depth: ExpressibleByArgument {}
