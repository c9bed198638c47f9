import ArgumentParser
import Platform
import SystemPackage

struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "Makes the keys that bundles are encrypted to.",
    discussion: """
      The secret key stays with the receiver of bundles; the public one, age1…, goes to the senders. They are keys of \
      age (age-encryption.org/v1), whose own programs take them too.

      \(ExitStatus.help)
      """,
    subcommands: [KeyNewCommand.self, KeyPublicCommand.self])
}

struct KeyNewCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Makes a new secret key, and prints the public one.",
    usage: "lazaret key new [-o <file>] [--json]",
    discussion: """
      With -o the secret key goes into a file that no other user may read, and the public key is printed. Without it the \
      secret key itself is printed, and the public key on standard error.

      EXAMPLE
        lazaret key new -o support.key

      \(ExitStatus.help)
      """)

  @Option(name: .output, help: ArgumentHelp("The new file; nothing may have its name.", valueName: "file"))
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
    try FileSystem().writeAtomically(
      Array(text.utf8), to: out.path, replacing: false, permissions: .ownerReadWrite)
    try output.print(
      ["publicKey": identity.recipient.description, "file": PathText(out.path)] as JSON.Object,
      content: "\(identity.recipient)\n")
  }
}

struct KeyPublicCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "public", abstract: "Prints the public keys of a file of secret keys.",
    usage: "lazaret key public <file> [--json]",
    discussion: """
      EXAMPLE
        lazaret key public support.key

      \(ExitStatus.help)
      """)

  @Argument(help: "A file that lazaret key new or age-keygen wrote.")
  var file: PathArgument

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
