import ArgumentParser
import Platform
import SupportBundle
import SystemPackage

struct BundleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "bundle", abstract: "Checks and unpacks bundles that were received.",
    discussion: """
      A bundle is not trusted: nothing is written outside of the folder, no link is made, and no more is unpacked than \
      its limits allow.
      """, subcommands: [BundleCheckCommand.self, BundleUnpackCommand.self])
}

struct IdentityOptions: ParsableArguments {
  @Option(help: .text("A file with secret keys, for an encrypted bundle; may be given again.", "file"))
  var identity: [PathArgument] = []

  func reader() throws -> BundleReader { BundleReader(identities: try KeyFiles.identities(identity.map(\.path))) }
}

extension BundleReader {
  /// Unpacks a bundle with a progress line, until Ctrl-C.
  fileprivate func unpackShowing(_ words: String, _ bundle: FilePath, into folder: FilePath) throws -> ReceivedBundle {
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
    verb: "check", abstract: "Checks that a bundle is whole and is what it says, and lists what is in it.",
    usage: "lazaret bundle check <bundle> [--identity <file>] [--home <dir>] [--json]",
    discussion: "It is unpacked into a private folder of the home, which is deleted at the end.",
    examples: "lazaret bundle check App.lazaret.tar.gz.age --identity support.key")

  @Argument(help: "The bundle.") var bundle: PathArgument

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
    verb: "unpack", abstract: "Decrypts, unpacks and checks a bundle, into a new folder.",
    usage: "lazaret bundle unpack <bundle> -o <folder> [--identity <file>] [--json]",
    discussion: "Every sum is checked. Where anything is not as it should be, nothing is left.",
    examples: "lazaret bundle unpack App.lazaret.tar.gz.age -o App --identity support.key")

  @Argument(help: "The bundle.") var bundle: PathArgument

  @Option(name: .output, help: .text("The new folder; nothing may have its name.", "folder"))
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

struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "key", abstract: "Makes the keys that bundles are encrypted to.",
    discussion: """
      The secret key stays with the receiver of bundles; the public one, age1…, goes to the senders. They are keys of \
      age (age-encryption.org/v1), whose own programs take them too.
      """, subcommands: [KeyNewCommand.self, KeyPublicCommand.self])
}

struct KeyNewCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "new", abstract: "Makes a new secret key, and prints the public one.",
    usage: "lazaret key new [-o <file>] [--json]",
    discussion: """
      With -o the secret key goes into a file that no other user may read, and the public key is printed. Without it the \
      secret key itself is printed, and the public key on standard error.
      """, examples: "lazaret key new -o support.key")

  @Option(name: .output, help: .text("The new file; nothing may have its name.", "file"))
  var out: PathArgument?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try out?.requirePlace()
    guard !output.json || out != nil else { throw ValidationError("--json never prints a secret key; say -o.") }
  }

  func perform() throws {
    let identity = AgeIdentity()
    let date = Surroundings.machine.now().rfc3339
    let text = "# created: \(date)\n# public key: \(identity.recipient)\n\(identity.secretText)\n"
    guard let out else {
      Terminal.standardError.write("Public key: \(identity.recipient)\n")
      Terminal.standardOutput.writeContent(text)
      return
    }
    try FileSystem().writeAtomically(Array(text.utf8), to: out.path, replacing: false, permissions: .ownerReadWrite)
    try output.print(
      ["publicKey": identity.recipient.description, "file": PathText(out.path)] as JSON.Object,
      content: "\(identity.recipient)\n")
  }
}

struct KeyPublicCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "public", abstract: "Prints the public keys of a file of secret keys.",
    usage: "lazaret key public <file> [--json]", examples: "lazaret key public support.key")

  @Argument(help: "A file that lazaret key new or age-keygen wrote.") var file: PathArgument

  @OptionGroup var output: OutputOptions

  func perform() throws {
    let keys = try KeyFiles.identities([file.path]).map(\.recipient.description)
    try output.print(["publicKeys": keys], content: keys.joined(separator: "\n") + "\n")
  }
}

enum KeyFiles {
  private static let limit = 1 << 20

  /// Parses keys, or reads files with one key a line.
  static func recipients(_ texts: [String]) throws -> [AgeRecipient] {
    var result: [AgeRecipient] = []
    for text in texts {
      if text.lowercased().hasPrefix("age1") {
        do throws(FileError) {
          result.append(try AgeRecipient(text))
        } catch {
          throw CommandLineSlip(error: CommandError(key: error, path: nil))
        }
        continue
      }
      let path = RawArguments.path(of: text)
      let lines = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
        .split(whereSeparator: \.isNewline).map(String.init)
      var found = 0
      for (number, line) in lines.enumerated() where !line.hasPrefix("#") && !line.allSatisfy(\.isWhitespace) {
        do throws(FileError) {
          result.append(
            line.uppercased().hasPrefix("AGE-SECRET-KEY-") ? try AgeIdentity(line).recipient : try AgeRecipient(line))
        } catch {
          throw CommandError(key: error, path: path, line: number + 1)
        }
        found += 1
      }
      guard found > 0 else {
        throw CommandError(.unusableKey, operation: "read the key", path: path, detail: "it holds no key")
      }
    }
    return result
  }

  static func identities(_ paths: [FilePath]) throws -> [AgeIdentity] {
    var result: [AgeIdentity] = []
    for path in paths {
      let text = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
      do throws(FileError) {
        result += try AgeIdentity.identities(in: text)
      } catch {
        throw CommandError(key: error, path: path)
      }
    }
    return result
  }
}
