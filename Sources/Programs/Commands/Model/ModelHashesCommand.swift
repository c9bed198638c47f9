import ArgumentParser
import ModelPresentation
import StoreCoordination
import SwiftModelSources

/// `lazaret model hashes`: the version hash of every entity of every version.
struct ModelHashesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hashes",
    abstract: "Prints the version hash of each entity and the checksum of each version.",
    usage: "lazaret model hashes <model> [--types <names>] [--json] [<options>]",
    discussion: """
      They are the hashes that Core Data writes into stores (NSStoreModelVersionHashes), and the checksum it names a \
      version by (NSStoreModelVersionChecksumKey).

      In Swift sources, an entity that only a compiler could tell has no hash. Its file and line are named, and the exit \
      code is 2, as it is where a version cannot be read.

      EXAMPLE
        lazaret model hashes App.xcdatamodeld

      \(ExitStatus.help)
      """)

  @OptionGroup var options: ModelOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let isSource = try SwiftSources.isSource(options.model.path)
      let loaded =
        try isSource
        ? options.versionOrder.loadWhole(options.model.path)
        : LoadedModel(bundle: options.load(json: output.json))
      let bundle = loaded.bundle
      guard !output.json else {
        let hashes = bundle.hashesPayload()
        try Terminal.standardOutput.write(json: JSON.Object(hashes, ["sources": loaded.sources]))
        guard loaded.isComplete, bundle.unreadableVersions.isEmpty else { throw ExitStatus.doubtful }
        return
      }
      if isSource { try loaded.tell(json: false) }
      var text = ""
      for version in bundle.versions {
        text += "\(printable(version.name))\(version.name == bundle.current.name ? " (current)" : "")\n"
        if version.isComplete { text += "  checksum \(version.checksum)\n" }
        var table = TextTable(["entity", "hash"])
        for name in version.model.entities.keys.inCodeUnitOrder() {
          table.append([printable(name), version.versionHashes[name]?.hex ?? "cannot be told"])
        }
        text += table.text()
        for name in version.mismatchedEntityNames {
          text +=
            "  warning: the bundle has another hash stored for \(printable(name)): its files are of different versions\n"
        }
      }
      Terminal.standardOutput.write(text)
      guard loaded.isComplete, bundle.unreadableVersions.isEmpty else { throw ExitStatus.doubtful }
    }
  }
}
