import ArgumentParser
import StoreCoordination

/// `lazaret bundle unpack`: opens a bundle into a folder.
struct BundleUnpackCommand: ParsableCommand {
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

  @Option(name: .shortAndLong, help: ArgumentHelp("The new folder; nothing may have its name.", valueName: "folder"))
  var output: PathArgument

  @OptionGroup var identity: IdentityOptions
  @OptionGroup var format: OutputOptions

  func validate() throws { try output.requirePlace() }

  func run() throws {
    try report(json: format.json) {
      let reader = try identity.reader()
      Interruption.listen()
      let line = ProgressLine()
      let mark = PrivateFolder.mark(of: output.path)
      defer { withExtendedLifetime(mark) {} }
      let received = try reader.unpack(bundle.path, into: output.path) { done, total in
        line.show("Unpacking", done, of: total, .bytes)
        return !Interruption.isRequested
      }
      line.clear()
      try received.print(format, isKept: true)
    }
  }
}
