import ArgumentParser
import Platform
import SystemPackage

struct KeyNewCommand: ParsableCommand {
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

  @Option(name: .shortAndLong, help: ArgumentHelp("The new file; nothing may have its name.", valueName: "file"))
  var output: PathArgument?

  @OptionGroup var format: OutputOptions

  func validate() throws {
    try output?.requirePlace()
    guard !format.json || output != nil else { throw ValidationError("--json never prints a secret key; say -o.") }
  }

  func run() throws {
    try report(json: format.json) {
      let identity = AgeIdentity()
      let date = Surroundings.machine.now().rfc3339
      let text = "# created: \(date)\n# public key: \(identity.recipient)\n\(identity.secretText)\n"
      guard let output else {
        Terminal.standardError.write("Public key: \(identity.recipient)\n")
        Terminal.standardOutput.writeContent(text)
        return
      }
      try FileSystem().writeAtomically(
        Array(text.utf8), to: output.path, replacing: false, permissions: .ownerReadWrite)
      try format.print(
        ["publicKey": identity.recipient.description, "file": PathText(output.path)] as JSON.Object,
        content: "\(identity.recipient)\n")
    }
  }
}
