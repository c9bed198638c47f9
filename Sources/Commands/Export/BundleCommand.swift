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

/// A bundle that was opened, as `bundle check --json` and `bundle unpack --json` print it.
struct ReceivedBundleJSON: Encodable {
  struct File: Encodable {
    var name: String
    var bytes: Int64
  }

  var identifier: String
  var level: BundleLevel
  var app: String?
  var store: String
  var date: String?
  var encrypted: Bool
  var sha256: String
  var bytes: Int64
  var folder: PathText?
  var storePath: PathText?
  var files: [File]

  init(_ bundle: ReceivedBundle, isKept: Bool) {
    identifier = bundle.identifier
    level = bundle.level
    app = bundle.app
    store = bundle.store
    date = bundle.date?.rfc3339
    encrypted = bundle.isEncrypted
    sha256 = bundle.sha256
    bytes = bundle.bytes
    folder = isKept ? PathText(bundle.folder) : nil
    storePath = isKept ? bundle.storePath.map { PathText($0) } : nil
    files = bundle.files.map { File(name: $0.name, bytes: $0.bytes) }
  }

  /// The same in words.
  var text: String {
    var text = "\(printable(identifier)): whole, every sum is right\n"
    text +=
      "  about     \(printable(store))\(app.map { " of \(printable($0))" } ?? "")\(date.map { ", \($0)" } ?? "")\n"
    text += "  level     \(level.rawValue): \(level.words)\n"
    text += "  size      \(readableSize(bytes))\(encrypted ? ", encrypted" : "")\n"
    text += "  SHA-256   \(sha256)\n"
    var table = TextTable(["file", "size"], numericColumns: [1])
    for file in files.prefix(200) { table.append([printable(file.name), readableSize(file.bytes)]) }
    text += table.text()
    if files.count > 200 { text += "  and \(files.count - 200) more\n" }
    if let storePath { text += "  The store is \(printable(storePath.text)). Look at it with: lazaret inspect\n" }
    return text
  }
}
