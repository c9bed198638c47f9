import ManagedObjectModel
import Migration
import SystemPackage
import TestSupport
import Testing

/// The mapping models that people released, with the models that lie beside them.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMappingModelTests {
  static var files: [FilePath] {
    (RealMaterial.folders(below: "models", ending: ".xcmappingmodel") + RealMaterial.files(below: "models", ending: ".cdm"))
      .sorted { $0.string < $1.string }
  }

  /// The models in the project that a file belongs to.
  static func bundles(beside path: FilePath) -> [ModelBundle] {
    guard let folder = RealMaterial.folder?.appending("models") else { return [] }
    let project = path.components.dropFirst(folder.components.count).first?.string ?? ""
    let places = ["xcdatamodeld", "momd"].flatMap { RealMaterial.folders(below: "models/\(project)", ending: ".\($0)") }
    return places.compactMap { try? ModelBundle.load(path: $0, unreadableVersions: .report) }
      .filter { $0.versions.count > 1 }
  }

  @Test func table() throws {
    for file in Self.files {
      print("==", file.string.split(separator: "/models/").last ?? "")
      for bundle in Self.bundles(beside: file) {
        do {
          let loaded = try MappingModel.load(path: file, for: bundle)
          for mapping in loaded.mappings {
            print("  +", bundle.path?.string.split(separator: "/models/").last ?? "", "losses", mapping.losses.count, "conditions", mapping.conditions.count)
            let s = bundle.versions.first { $0.model == mapping.source }?.name ?? "?"
            let d = bundle.versions.first { $0.model == mapping.destination }?.name ?? "?"
            print("    \(s) → \(d)")
            for entity in mapping.entityMappings {
              print("    [\(entity.kind)] \(entity.name) \(entity.sourceEntityName ?? "-") → \(entity.destinationEntityName ?? "-") \(entity.policyClassName ?? "") \(entity.sourceFilter.map { "\($0)" } ?? "") \(entity.userInfo)")
              for property in entity.propertyMappings { print("       \(property.destination): \(property.value)") }
            }
          }
        } catch {
          print("  -", bundle.path?.string.split(separator: "/models/").last ?? "", error.code, error.detail)
        }
      }
    }
  }
}
