import ArgumentParser
import Platform

/// `lazaret licences`: the licences of everything that is linked.
struct LicencesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "licences",
    abstract: "Shows what this program is made of, and the licences of all of it.",
    usage: "lazaret licences [--list] [--json]",
    discussion: """
      The texts are in the program itself. Shared libraries of the system are listed too; their exact versions are \
      those that the system has.

      EXAMPLE
        lazaret licences --list

      \(ExitStatus.help)
      """,
    aliases: ["licenses"])

  @Flag(help: "Leave the texts out.")
  var list = false

  @OptionGroup var output: OutputOptions

  private struct Listing: Encodable {
    var version: String
    var components: [LinkedComponent]
    /// Missing with `--list`.
    var texts: [String: String]?
  }

  func run() throws {
    try report(json: output.json) {
      try output.print(
        Listing(
          version: LibraryVersion.current, components: LinkedComponent.all,
          texts: list ? nil : LinkedComponent.texts),
        content: Self.table() + (list ? "" : Self.texts()))
    }
  }

  private static func table() -> String {
    var text = ""
    for linking in [LinkedComponent.Linking.own, .included, .runtime, .shared] {
      if !text.isEmpty { text += "\n" }
      text += linking.title + "\n"
      var table = TextTable(["name", "version", "licence", "from"], shrinking: [3, 2])
      for component in LinkedComponent.all where component.linking == linking {
        let version = linking == .own ? LibraryVersion.current : component.version
        table.append([
          component.name, version ?? "", component.licence,
          component.within.map { "in \($0)" } ?? component.home ?? "",
        ])
      }
      text += table.text()
    }
    return text
  }

  /// Each text once, with the components that it is of.
  private static func texts() -> String {
    var shown: Set<String> = []
    var text = ""
    for component in LinkedComponent.all {
      for name in component.texts where shown.insert(name).inserted {
        let owners = LinkedComponent.all.filter { $0.texts.contains(name) }.map(\.name)
        text += "\n" + String(repeating: "=", count: 80) + "\n"
        text += owners.joined(separator: ", ") + "\n"
        text += String(repeating: "=", count: 80) + "\n\n"
        text += (LinkedComponent.texts[name] ?? "") + "\n"
      }
    }
    return text
  }
}

extension LinkedComponent.Linking {
  fileprivate var title: String {
    switch self {
    case .own: "This program"
    case .included: "Included in it"
    case .runtime: "Swift's runtime, included in packaged builds, else of the toolchain"
    case .shared: "Shared libraries of the system"
    }
  }
}

/// Something that is linked into the command, with its licence.
struct LinkedComponent: Encodable {
  /// How it gets into the process.
  enum Linking: String, Encodable {
    case own
    /// Its code is in the program.
    case included
    /// Swift's runtime: its code is in packaged programs, and else in shared libraries of the toolchain.
    case runtime
    /// A shared library of the system.
    case shared
  }

  var name: String
  /// The exact version, of packages that the build fetches.
  var version: String?
  /// The component whose sources it is a part of.
  var within: String?
  /// An expression of SPDX's identifiers.
  var licence: String
  var linking: Linking
  var home: String?
  /// The names of its licence and its notices in ``texts``; none where they come with the library.
  var texts: [String]
}
