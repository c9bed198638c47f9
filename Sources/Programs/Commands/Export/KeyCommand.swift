import ArgumentParser

/// `lazaret key`: keys to encrypt bundles to.
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
