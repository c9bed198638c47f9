package import ManagedObjectModel
package import Migration
internal import StoreFiles

/// How a salvaged store is migrated to the app's version.
package struct SalvageMigration: Sendable {
  /// How: the app's mappings, stages and ways; where the result goes and what may be lost is the salvage's own affair.
  package var options: Migrator.Options

  /// By inference alone unless told otherwise.
  package init(_ options: Migrator.Options = Migrator.Options()) { self.options = options }

  /// The options of the migration of a salvaged store.
  var settled: Migrator.Options {
    var options = options
    (options.version, options.output, options.home, options.isRecorded) = (nil, nil, nil, false)
    options.repair = .structure
    // The evidence stays, and what the migration leaves out is told; refusing would leave the app without any record.
    options.whenMigrationLoses = .migrate
    options.matchesNames = true
    return options
  }

  /// The reason why no salvaged store of a model can be brought to the current version of a bundle; nil where a way leads there.
  package func obstacle(from source: MigrationPath.Source, in bundle: ModelBundle) -> MigrationError? {
    do throws(MigrationError) {
      _ = try Migrator(bundle).way(from: source, settled)
      return nil
    } catch {
      return error
    }
  }

  /// Whether the rows of a store stay in its own model, which is no version of the bundle or a newer one: where a way leads on,
  /// where the app has to mend one, or where it is newer than the app's, so that a newer app has all of it.
  func keeps(_ model: ManagedObjectModel, in bundle: ModelBundle) -> Bool {
    guard let obstacle = obstacle(from: .model(model), in: bundle) else { return true }
    return !obstacle.kind.leavesNoWay
  }
}
