import ArgumentParser
import ManagedObjectModel
import Platform
import SystemPackage

struct ModelExportCommand: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case mom

    case xcdatamodel
  }

  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes a version of a model compiled or as source, with the same hashes.",
    usage: "lazaret model export <model> --output <file> [--version-name <name>] [<options>]",
    discussion: """
      The version is that of a store, a backup or a bundle, by the model that it carries, or one of a model of any kind. \
      What is written is read back first: its hashes are the version's. What source has no word for, such as a default of \
      bytes, is named.

      EXAMPLE
        lazaret model export App.store --output V1.mom
        lazaret model export App.store --output V1.xcdatamodel

      \(ExitStatus.help)
      """)

  @OptionGroup var options: ModelOptions

  @Option(name: .shortAndLong, help: ArgumentHelp("The new file or folder.", valueName: "file"))
  var output: PathArgument

  @Option(
    name: .customLong("version-name"),
    help: ArgumentHelp("The version; the current one if not given.", valueName: "name"))
  var versionName: String?

  @Option(help: "What it is written as; if not given, what the ending says, else mom.")
  var format: Format?

  @OptionGroup var presentation: OutputOptions

  func validate() throws { try output.requirePlace() }

  func run() throws {
    try report(json: presentation.json) {
      let bundle = try options.load(json: presentation.json)
      let version = try versionName.map { try named($0, bundle) } ?? bundle.current
      guard try FileSystem().status(of: output.path, followingLinks: false) == nil else {
        throw FileError(.alreadyExists, operation: "export the model", path: output.path)
      }
      let format = format ?? (output.path.extension?.lowercased() == "xcdatamodel" ? .xcdatamodel : .mom)
      let omissions = try write(version.model, as: format)
      let result = ModelExportJSON(
        version: version.name, checksum: version.checksum, entities: version.versionHashes.mapValues(\.hex),
        format: format.rawValue, file: PathText(output.path), leftOut: omissions)
      try presentation.print(result, result.text)
    }
  }

  /// Writes the model atomically and returns what was omitted, in words.
  private func write(_ model: ManagedObjectModel, as format: Format) throws -> [String] {
    let system = FileSystem()
    // A model holds no records.
    switch format {
    case .mom:
      try system.writeAtomically(
        try model.compiled(), to: output.path, replacing: false, permissions: .init(rawValue: 0o644))
      return []
    case .xcdatamodel:
      let source = try model.source()
      try system.makeDirectory(output.path, permissions: .init(rawValue: 0o755))
      do {
        try system.writeAtomically(
          source.contents, to: output.path.appending("contents"), replacing: false,
          permissions: .init(rawValue: 0o644))
      } catch {
        // Report the first error.
        try? system.removeDirectory(output.path)
        throw error
      }
      return source.omissions
    }
  }

  private func named(_ name: String, _ bundle: ModelBundle) throws -> ModelVersion {
    if let version = bundle.version(named: name) { return version }
    if let unreadable = bundle.unreadableVersions.first(where: { $0.name == name }) { throw unreadable.error }
    let names = bundle.versions.map { printable($0.name) }.joined(separator: ", ")
    throw ModelError(
      .versionOrder, path: options.model.path, detail: "it has no version \"\(printable(name))\"; it has \(names)")
  }
}

struct ModelExportJSON: Encodable {
  var version: String
  var checksum: String
  var entities: [String: String]
  var format: String
  var file: PathText

  /// The model's parts that source cannot express; they do not affect hashes.
  var leftOut: [String]

  fileprivate var text: String {
    let name = printable(file.path?.string ?? "")
    var text = "\(name): \(printable(version)) as \(format), checksum \(checksum)\n"
    for one in leftOut { text += "  left out: \(one)\n" }
    return text
  }
}
