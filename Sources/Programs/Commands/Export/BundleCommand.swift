import ArgumentParser
import StoreCoordination

/// `lazaret bundle`: looks at bundles that were received.
struct BundleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bundle",
    abstract: "Checks and unpacks bundles that were received.",
    discussion: """
      A bundle is not trusted: nothing is written outside of the folder, no link is made, and no more is unpacked than \
      its limits allow.

      \(ExitStatus.help)
      """,
    subcommands: [BundleCheckCommand.self, BundleUnpackCommand.self])
}

/// The keys that a bundle is opened with.
struct IdentityOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("A file with secret keys, for an encrypted bundle; may be given again.", valueName: "file"))
  var identity: [PathArgument] = []

  func reader() throws -> BundleReader { BundleReader(identities: try KeyFiles.identities(identity.map(\.path))) }
}

extension ReceivedBundle {
  /// What `bundle check` and `bundle unpack` print, where it was unpacked to only where that is kept.
  func print(_ output: OutputOptions, isKept: Bool) throws {
    let storePath = isKept ? storePath.map { PathText($0) } : nil
    let payload = JSON.Object(self, ["folder": isKept ? PathText(folder) : nil, "storePath": storePath])
    try output.print(payload, text(storePath))
  }

  private func text(_ storePath: PathText?) -> String {
    let about = app.map { " of \(printable($0))" } ?? ""
    var text = "\(printable(identifier)): whole, every sum is right\n"
    text += "  about     \(printable(store))\(about)\(date.map { ", \(momentText($0.rfc3339))" } ?? "")\n"
    text += "  level     \(level.rawValue): \(level.words)\n"
    text += "  size      \(readableSize(bytes))\(isEncrypted ? ", encrypted" : "")\n"
    text += "  SHA-256   \(sha256)\n"
    var table = TextTable(["file", "size"], numericColumns: [1])
    for file in files.prefix(200) { table.append([printable(file.name), readableSize(file.bytes)]) }
    text += table.text()
    if files.count > 200 { text += "  and \(files.count - 200) more\n" }
    if let storePath { text += "  The store is \(printable(storePath.text)). Look at it with: lazaret inspect\n" }
    return text
  }
}
