import ArgumentParser
import Foundation
import Platform
import SystemPackage

/// `lazaret manual`: the manual pages, for `Scripts/install` and packages.
struct ManualCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manual", abstract: "Writes the manual's pages, a file for each verb.", shouldDisplay: false)

  @Option(help: ArgumentHelp("The folder that the pages are written into.", valueName: "dir"))
  var into: PathArgument

  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let system = FileSystem()
      try system.makeDirectory(into.path)
      let pages = try Self.pages()
      for page in pages {
        try system.writeAtomically(
          Array(page.text.utf8), to: into.path.appending(page.fileName), replacing: true,
          permissions: .init(rawValue: 0o644))
      }
      let names = pages.map(\.fileName)
      try output.print(["pages": names], names.joined(separator: "\n") + "\n")
    }
  }

  /// One page a listed verb, the command's own first.
  private static func pages() throws -> [ManualPage] {
    func pages(
      _ description: CommandDescription, _ type: any ParsableCommand.Type, _ path: [String]
    ) -> [ManualPage] {
      let page = ManualPage(
        path: path, command: description, usage: LazaretCommand.usageString(for: type),
        version: LibraryVersion.current)
      return [page]
        + type.configuration.subcommands.flatMap { subcommand -> [ManualPage] in
          let name = subcommand.configuration.commandName
          guard let name, let below = description.subcommands?.first(where: { $0.commandName == name }),
            below.isDocumented
          else { return [] }
          return pages(below, subcommand, path + [name])
        }
    }
    let description: CommandDescription
    do {
      description = try CommandDescription.of(LazaretCommand.self)
    } catch {
      throw CommandError(unforeseen: error)
    }
    return pages(description, LazaretCommand.self, [description.commandName])
  }
}

struct CommandDescription: Decodable {
  struct Argument: Decodable {
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

  static func of(_ command: any ParsableCommand.Type) throws -> CommandDescription {
    try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command
  }
}
