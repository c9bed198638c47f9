import ArgumentParser
import Lazaret

/// `lazaret model hashes`: the version hash of every entity of every version.
struct ModelHashesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hashes",
    abstract: "Prints the version hash of each entity and the checksum of each version.",
    discussion: """
      They are the hashes that Core Data writes into stores (NSStoreModelVersionHashes), and the checksum it names a \
      version by (NSStoreModelVersionChecksumKey).

      \(ExitStatus.help)
      """)

  @OptionGroup var options: ModelOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let bundle = try options.load()
      guard !output.json else {
        Terminal.standardOutput.write(JSONText.pretty(ModelHashesJSON(bundle)))
        return
      }
      var text = ""
      for version in bundle.versions {
        text += "\(printable(version.name))\(version.name == bundle.current.name ? " (current)" : "")\n"
        text += "  checksum \(version.checksum)\n"
        var table = TextTable(["entity", "hash"])
        for (name, hash) in version.versionHashes.sorted(by: { $0.key < $1.key }) {
          table.append([printable(name), hash.hex])
        }
        text += table.text()
        for name in version.mismatchedEntityNames {
          text +=
            "  warning: the bundle has another hash stored for \(printable(name)): its files are of different versions\n"
        }
      }
      Terminal.standardOutput.write(text)
    }
  }
}
