import ArgumentParser
import ExportCoordination
import StoreCoordination

/// `lazaret bundle check`: proves that a bundle is whole.
struct BundleCheckCommand: ParsableCommand {
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

  func run() throws {
    try report(json: output.json) {
      let reader = try identity.reader()
      Interruption.listen()
      let line = ProgressLine()
      let folder = try ExportFolder(home: home.current().path, surroundings: .machine)
      let received = try reader.unpack(bundle.path, into: folder.path.appending("bundle")) { done, total in
        line.show("Checking", done, of: total, .bytes)
        return !Interruption.isRequested
      }
      line.clear()
      withExtendedLifetime(folder) {}
      try received.print(output, isKept: false)
    }
  }
}
