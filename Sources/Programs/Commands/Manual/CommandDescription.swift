import ArgumentParser
import Foundation

/// A verb as the parser of the command line describes it, with its arguments and its subcommands.
struct CommandDescription: Decodable {
  /// A positional argument, an option or a flag.
  struct Argument: Decodable {
    /// A name as it is written on the command line.
    struct Name: Decodable {
      var kind: String
      var name: String

      var spelling: String { (kind == "long" ? "--" : "-") + name }
    }

    var kind: String
    var shouldDisplay: Bool
    var isOptional: Bool
    var isRepeating: Bool
    var sectionTitle: String?
    var names: [Name]?
    var valueName: String?
    var defaultValue: String?
    var allValues: [String]?
    var abstract: String?
    var discussion: String?

    /// Whether it has a place and no name.
    var isPositional: Bool { kind == "positional" }
  }

  var commandName: String
  var abstract: String?
  var discussion: String?
  var shouldDisplay: Bool
  var aliases: [String]?
  var arguments: [Argument]?
  var subcommands: [CommandDescription]?

  private struct Dump: Decodable {
    var serializationVersion: Int
    var command: CommandDescription
  }

  /// The description of a command and all that is below it.
  ///
  /// - Throws: where the parser describes itself in another form than the one that is read here.
  static func of(_ command: any ParsableCommand.Type) throws -> CommandDescription {
    try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command
  }
}
