import ExportCoordination
internal import HTTPServer
package import Inbox
internal import Logging
internal import RecordBrowsing
import Sending
package import StoreCoordination

/// What the routes of every part of the inspector work with.
package struct InspectorParts: Sendable {
  /// The folder with the catalogue of quarantined stores and with `Backups/`.
  package let home: FilePath

  /// The file system, the clock and the source of identifiers.
  package let surroundings: Surroundings

  /// The models that were given.
  package let models: [InspectorModel]

  /// The stores of the home; the only way from an address to a file.
  package let catalogue: StoreCatalogue

  let sessions: Sessions

  /// What is running.
  package let work: RunningWork

  /// Who receives bundles that are sent from here; none if nil.
  package let receiver: InspectorReceiver?

  let sender: Sender

  /// The inbox; nil where there is none.
  package var inbox: Inbox?

  /// The records of stores, from where they can be read; what that takes is done once.
  let sides: StoreSides

  /// What looks at stores in their places have found.
  let examinations = ExaminationCache()

  /// The looks at stores for which no page waits.
  let looks = ExaminationQueue()

  /// What is known of repairs, and what was repaired here.
  let repairs = RepairNotes()

  /// What is told of repairs as they go on.
  let logger: Logger

  let allowsActions: Bool

  /// The quarantined stores of the home, for actions.
  var quarantines: Quarantines { Quarantines(home: home, surroundings: surroundings) }

  /// The models that were given, of stores of Core Data.
  var modelBundles: [ModelBundle] {
    models.compactMap { model in
      guard case .coreData(let bundle) = model.model else { return nil }
      return bundle
    }
  }

  /// The backups of the home, for actions.
  var backups: Backups { Backups(home: home, surroundings: surroundings) }

  /// Bundles for support, of the stores of the home.
  var exports: SupportExports { SupportExports(home: home, surroundings: surroundings) }

  /// The bundles that are to be sent, are being sent, or were.
  var outbox: Outbox { Outbox(home: home, surroundings: surroundings) }
}
