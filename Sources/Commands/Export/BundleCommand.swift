import ArgumentParser
import Platform
import SupportBundle
import SystemPackage

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

struct IdentityOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("A file with secret keys, for an encrypted bundle; may be given again.", valueName: "file"))
  var identity: [PathArgument] = []

  func reader() throws -> BundleReader { BundleReader(identities: try KeyFiles.identities(identity.map(\.path))) }
}

extension BundleReader {
  /// Unpacks a bundle with a progress line, until Ctrl-C.
  fileprivate func unpackShowing(
    _ words: String, _ bundle: FilePath, into folder: FilePath
  ) throws -> ReceivedBundle {
    let line = ProgressLine()
    defer { line.clear() }
    return try unpack(bundle, into: folder) { done, total in
      line.show(words, done, of: total, .bytes)
      return !Interruption.isRequested
    }
  }
}

extension ReceivedBundle {
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

struct BundleCheckCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Checks that a bundle is whole and is what it says, and lists what is in it.",
    usage: "lazaret bundle check <bundle> [--identity <file>] [--home <dir>] [--json]",
    discussion: """
      It is unpacked into a private folder of the home, which is deleted at the end.

      EXAMPLE
        lazaret bundle check App.lazaret.tar.gz.age --identity support.key

      \(ExitStatus.help)
      """)

  @Argument(help: "The bundle.")
  var bundle: PathArgument

  @OptionGroup var identity: IdentityOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let reader = try identity.reader()
    Interruption.listen()
    let folder = try ExportFolder(home: home.current().path, surroundings: .machine)
    let received = try reader.unpackShowing("Checking", bundle.path, into: folder.path.appending("bundle"))
    withExtendedLifetime(folder) {}
    try received.print(output, isKept: false)
  }
}

struct BundleUnpackCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unpack", abstract: "Decrypts, unpacks and checks a bundle, into a new folder.",
    usage: "lazaret bundle unpack <bundle> -o <folder> [--identity <file>] [--json]",
    discussion: """
      Every sum is checked. Where anything is not as it should be, nothing is left.

      EXAMPLE
        lazaret bundle unpack App.lazaret.tar.gz.age -o App --identity support.key

      \(ExitStatus.help)
      """)

  @Argument(help: "The bundle.")
  var bundle: PathArgument

  @Option(name: .output, help: ArgumentHelp("The new folder; nothing may have its name.", valueName: "folder"))
  var out: PathArgument

  @OptionGroup var identity: IdentityOptions
  @OptionGroup var output: OutputOptions

  func validate() throws { try out.requirePlace() }

  func perform() throws {
    let reader = try identity.reader()
    Interruption.listen()
    let mark = PrivateFolder.mark(of: out.path)
    defer { withExtendedLifetime(mark) {} }
    let received = try reader.unpackShowing("Unpacking", bundle.path, into: out.path)
    try received.print(output, isKept: true)
  }
}
