package import HTTPServer
package import Inbox
package import Logging
internal import ObjectStorage
package import Sending
package import StoreCoordination

/// What an inspector is about.
package struct InspectorOptions: Sendable {
  /// The folder with the catalogue of quarantined stores and with `Backups/`.
  package var home: FilePath

  /// The folder with the stylesheet and the scripts, `Public/`.
  package var publicFolder: FilePath

  /// The models by which stores are salvaged, browsed and planned; the first is the one that is proposed.
  package var models: [InspectorModel] = []

  /// Whether actions are offered.
  package var allowsActions = true

  /// Who receives bundles that are sent from here; none if nil.
  package var receiver: InspectorReceiver?

  /// Over what they are sent.
  package var transport: any UploadTransport = CurlTransport()

  /// The inbox that bundles arrive in; nil where none is received.
  package var inbox: Inbox?

  /// What counts the requests, for `/metrics`; nil where none are counted.
  package var meter: RequestMeter?

  /// The addresses besides those of this machine that may read `/metrics`.
  package var metricsReaders: Set<ClientAddress> = []

  /// What is told of repairs as they go on, as `lazaret repair` tells it; nothing unless given.
  package var logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }

  /// An inspector of a home.
  package init(home: FilePath, publicFolder: FilePath) {
    self.home = home
    self.publicFolder = publicFolder
  }
}
