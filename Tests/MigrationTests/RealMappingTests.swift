import ManagedObjectModel
import Migration
import SystemPackage
import TestSupport
import Testing

/// Models that people released, every ordered pair of their versions.
@Suite(.enabled(if: RealMaterial.isAvailable, "\(RealMaterial.skipped)"))
struct RealMappingTests {
  static let bundles =
    RealMaterial.folders(below: "models", ending: ".xcdatamodeld")
    + RealMaterial.folders(below: "models", ending: ".momd")

  /// All pairs with LAZARET_LONG=1; else some hundreds of each bundle, of which the largest has ten thousand.
  @Test func everyPairIsInferredOrRefusedWithAReason() throws {
    var counts = (bundles: 0, pairs: 0, same: 0, inferred: 0, lossy: 0, refused: 0)
    var kinds: [String: Int] = [:]
    for path in Self.bundles {
      let bundle: ModelBundle
      do throws(ModelError) {
        bundle = try ModelBundle.load(path: path)
      } catch {
        continue
      }
      guard bundle.versions.count > 1 else { continue }
      counts.bundles += 1
      for (from, to) in pairs(bundle) {
        counts.pairs += 1
        let inference = MappingInference(from: from.model, to: to.model)
        let mapping = inference.mapping
        #expect(
          Set(mapping.entityMappings.compactMap(\.destinationEntityName)) == Set(to.model.entities.keys), "\(path)")
        #expect(Set(mapping.entityMappings.compactMap(\.sourceEntityName)) == Set(from.model.entities.keys), "\(path)")
        for refusal in inference.refusals {
          kinds[refusal.kind.rawValue, default: 0] += 1
          #expect(!refusal.reason.isEmpty && !refusal.detail.isEmpty && !refusal.wayRound.isEmpty)
        }
        #expect(
          MappingListing(inference, from: from.name, to: to.name).lines.allSatisfy { line in
            // Only a name that is long itself makes a line longer.
            let longest = line.split(separator: " ").map(\.count).max() ?? 0
            return line.count <= 100 + max(0, longest - 20)
          }, "\(path)")
        if from.versionHashes == to.versionHashes {
          counts.same += 1
          #expect(inference.refusals.isEmpty && mapping.losses.isEmpty)
        } else if inference.refusals.isEmpty {
          counts.inferred += 1
          if !mapping.losses.isEmpty { counts.lossy += 1 }
        } else {
          counts.refused += 1
        }
      }
      _ = ModelLint(bundle, options: ModelLint.Options(checksCloudKit: true))
    }
    print(
      """
      real models: \(counts.bundles) bundles, \(counts.pairs) ordered pairs looked at: \(counts.inferred) inferred \
      (\(counts.lossy) with losses), \(counts.same) with the same hashes, \(counts.refused) refused \
      (\(kinds.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")))
      """)
    #expect(counts.bundles >= 10)
    #expect(counts.inferred > 50)
  }

  private func pairs(_ bundle: ModelBundle) -> [(ModelVersion, ModelVersion)] {
    let all = bundle.versions.indices.flatMap { from in
      bundle.versions.indices.filter { $0 != from }.map { (bundle.versions[from], bundle.versions[$0]) }
    }
    let distance = environment("LAZARET_LONG") != nil ? 1 : max(1, all.count / 200)
    return stride(from: 0, to: all.count, by: distance).map { all[$0] }
  }
}
