import ArgumentParser
import Platform

struct LicencesCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "licences", abstract: "Shows what this program is made of, and the licences of all of it.",
    usage: "lazaret licences [--list] [--json]",
    discussion: """
      The texts are in the program itself. Shared libraries of the system are listed too; their exact versions are \
      those that the system has.
      """, examples: "lazaret licences --list",
    aliases: ["licenses"])

  @Flag(help: "Leave the texts out.") var list = false

  @OptionGroup var output: OutputOptions

  func perform() throws {
    try output.print(
      [
        "version": LibraryVersion.current, "components": LinkedComponent.all,
        "texts": list ? nil : LinkedComponent.texts,
      ] as JSON.Object,
      content: Self.table() + (list ? "" : Self.texts()))
  }

  private static func table() -> String {
    var text = ""
    for linking in [LinkedComponent.Linking.own, .included, .runtime, .shared] {
      if !text.isEmpty { text += "\n" }
      text += linking.title + "\n"
      var table = TextTable(["name", "version", "licence", "from"], shrinking: [3, 2])
      for component in LinkedComponent.all where component.linking == linking {
        let version = linking == .own ? LibraryVersion.current : component.version
        table.append(
          component.name, version ?? "", component.licence,
          component.within.map { "in \($0)" } ?? component.home ?? "")
      }
      text += table.text()
    }
    return text
  }

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

struct LinkedComponent: Encodable {
  enum Linking: String, Encodable {
    case own, included
    /// Swift's runtime: included in packaged programs, else shared libraries of the toolchain.
    case runtime
    case shared
  }

  var name: String
  /// The exact version of a fetched package.
  var version: String?
  /// The component that contains its sources.
  var within: String?
  /// An SPDX expression.
  var licence: String
  var linking: Linking
  var home: String?
  /// Its licence and notices in ``texts``; empty if they come with the library.
  var texts: [String]
}
